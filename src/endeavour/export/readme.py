"""The README.md of an exported folder: what it is, and a sample that translates a sentence with it."""

# Tokens after which the samples' output ends, where the model has as many positions.
MAX_LENGTH = 512

CTRANSLATE2 = """\
# {run}, for CTranslate2 ({quantization})

Made by `endeavour export format=ctranslate2`. Inside this folder, with `pip install ctranslate2 sentencepiece`:

```python
import ctranslate2
import sentencepiece

source = sentencepiece.SentencePieceProcessor(model_file="source.model")
target = sentencepiece.SentencePieceProcessor(model_file="target.model")
translator = ctranslate2.Translator(".", inter_threads=1, intra_threads=1)
sentences = ["{sentence}"]
results = translator.translate_batch(
    source.encode(sentences, out_type=str),
    beam_size={beam_size},
    length_penalty={length_penalty},
    max_input_length=0,
    max_decoding_length={max_length},
    suppress_sequences=[["<pad>"], ["<s>"]],
)
for result in results:
    print(target.decode(result.hypotheses[0]))
```

- One sentence a line, in Unicode normal form C. `</s>` is added by CTranslate2.
- Its `length_penalty` is not endeavour's: it divides by length^α, not by ((5 + length) / 6)^α.
  `endeavour translate decoding.engine=ctranslate2` ranks by the latter.
- At most {positions} tokens a sentence of input. Output ends after {max_length}, unless `max_decoding_length` is
  set to another number, at most {positions}. By default CTranslate2 cuts input after 1,024 tokens, output after 256.
- `export.json` says which weights this was made from, `parity.json` how it compares with them.
"""

HUGGINGFACE = """\
# {run}, for Hugging Face transformers ({architecture})

Made by `endeavour export format=huggingface`. Inside this folder, with
`pip install torch transformers sentencepiece`:

```python
import sentencepiece
import torch
from transformers import AutoModelForSeq2SeqLM

source = sentencepiece.SentencePieceProcessor(model_file="source.model")
target = sentencepiece.SentencePieceProcessor(model_file="target.model")
model = AutoModelForSeq2SeqLM.from_pretrained(".").eval()
eos = model.config.eos_token_id
ids = [*source.encode("{sentence}"), eos]
output = model.generate(torch.tensor([ids]))
print(target.decode(output[0].tolist()))
```

- There is no tokenizer for `AutoTokenizer`: those of Marian and Pegasus alter the text, or split it differently,
  and so would give other ids than the model was trained with. SentencePiece alone is exact.
- One sentence a line, in Unicode normal form C, `</s>` at its end. Pad batches with {pad} and give an
  `attention_mask`.
- `generation_config.json` holds the beam size and length penalty of the export. Its `length_penalty` is
  not endeavour's: it divides by length^α, not by ((5 + length) / 6)^α.
- At most {positions} tokens of input. Output ends after {max_length} tokens, `max_length` of `generation_config.json`,
  unless `generate` is given another number, at most {positions}.
- `export.json` says which weights this was made from, `parity.json` how it compares with them.
"""
