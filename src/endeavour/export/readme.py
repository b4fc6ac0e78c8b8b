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
---
{metadata}---

# {run}

Translates {source_language} into {target_language}, sentence by sentence: a Transformer of {parameters} parameters,
for Hugging Face transformers ({architecture}). Made by `endeavour export format=huggingface`. With
`pip install torch transformers`{where}:

```python
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("{address}")
{target_tokenizer}model = AutoModelForSeq2SeqLM.from_pretrained("{address}").eval()
batch = tokenizer(["{sentence}"], return_tensors="pt", padding=True)
output = model.generate(**batch)
print({joining}.batch_decode(output, skip_special_tokens=True)[0])
```

## Scores

{scores}
## Data

{data}
The license of the text decides which license the weights can have: add it above before you pass them on.

## Settings

```yaml
{settings}```

## What to know

- One sentence a line. The tokenizer brings text to its normal form itself (NFC, no control characters, single spaces)
  and gives the ids that SentencePiece gives with `source.model` and `target.model`. Known to differ: combining marks
  that Unicode added since version 10 keep the order in which they are written; and of what a model writes in bytes, a
  run that is not valid UTF-8 becomes U+FFFD throughout, and combining marks are not joined with their letters.
- `generation_config.json` holds the beam size and length penalty of the export. Its `length_penalty` is
  not endeavour's: it divides by length^α, not by ((5 + length) / 6)^α.
- At most {positions:,} tokens of input. Output ends after {max_length} (`max_length` in `generation_config.json`),
  unless `generate` is given another number, at most {positions:,}.
- `export.json` says which weights this was made from, `parity.json` how it compares with them.
"""

ARGOS = """\
# {run}, for Argos Translate and LibreTranslate ({quantization})

Made by `endeavour export format=argos`. Inside this folder, with `pip install argostranslate`:

```python
import argostranslate.package
import argostranslate.translate

argostranslate.package.install_from_path("{package}.argosmodel")
print(argostranslate.translate.translate("{sentence}", "{source_code}", "{target_code}"))
```

Installed for the user who runs it, the package is also what this user's `libretranslate` serves. Uninstall another
package for the same two languages first: of two, Argos takes the one that it finds first.

- Argos splits a text into sentences with a model of its own, MiniSBD, which it downloads when it is first needed; a
  package may bring another in a folder `minisbd` or `stanza`.
- Argos brings no text to a normal form: give it Unicode normal form C without control characters. It writes a space for
  every `_`, searches with a beam of 4, and on a CPU computes in int8 unless `ARGOS_COMPUTE_TYPE=float32`.
- Output ends after 256 tokens a sentence, and input after 1,024.
- `export.json` says which weights this was made from, `parity.json` how the model inside compares with them.
"""

TAGGED = """\
- Every sentence begins with the tag `{tag}` and a space, as in the sample: give one sentence at a time.
"""

PLACEHOLDERS = """\
- The symbols ⟦1⟧ to ⟦{count}⟧ stand for markup, placeholders and addresses. Replace these before you translate{tagged},
  and put them back after it, as `protect` and `restore` of `endeavour.data.protection` do.
"""

ARGOS_PACKAGE = """\
# {source_language} to {target_language}: {run}

Made by `endeavour export format=argos`, for Argos Translate and LibreTranslate.
"""
