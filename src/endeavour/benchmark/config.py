"""What a benchmark measures, and how often. Knows no machine and no measurement."""

from dataclasses import dataclass

from endeavour.errors import UserError

PARTS = ("training", "decoding", "data", "startup", "growth", "scale")
OURS = "endeavour"  # how our own rows are called
REFERENCES = ("torch", "huggingface", "ctranslate2")


@dataclass(kw_only=True)
class BenchSize:
    """The numbers of a model that its cost depends on; all others are those of `model`."""

    name: str
    encoder_layers: int
    decoder_layers: int
    width: int
    num_heads: int
    feed_forward: int


@dataclass(kw_only=True)
class BenchConfig:
    """Values and their meaning: conf/bench/default.yaml."""

    parts: list[str]
    sizes: list[str]
    known_sizes: list[BenchSize]
    references: list[str]
    repeats: int
    tokens_per_batch: int
    warmup_updates: int
    updates: int
    beam_sizes: list[int]
    decoding_sentences: int
    decoding_tokens: int
    decoding_batch: int
    latency_sentences: int
    growth_tokens: int
    growth_batches: list[int]
    growth_widths: list[int]
    scale_pairs: int
    profile: bool

    def size(self, name: str) -> BenchSize:
        """The known size of that name."""
        return next(size for size in self.known_sizes if size.name == name)

    def check(self) -> None:
        """Raises `UserError`, naming the key, for values that describe no benchmark."""
        choices = {
            "parts": PARTS,
            "references": REFERENCES,
            "sizes": tuple(size.name for size in self.known_sizes),
        }
        for key, known in choices.items():
            for value in getattr(self, key):
                if value not in known:
                    raise UserError(f"bench.{key}: {value} is not known; choose from {', '.join(known)}")
        for key in ("sizes", "beam_sizes", "growth_batches", "growth_widths"):
            if not getattr(self, key):
                raise UserError(f"bench.{key} is empty: name at least one")
        whole = ("repeats", "tokens_per_batch", "updates", "decoding_sentences", "decoding_batch")
        for key in (*whole, "latency_sentences", "growth_tokens", "scale_pairs"):
            if getattr(self, key) < 1:
                raise UserError(f"bench.{key}={getattr(self, key)}: must be at least 1")
        for key in ("beam_sizes", "growth_batches", "growth_widths"):
            if min(getattr(self, key)) < 1:
                raise UserError(f"bench.{key}={getattr(self, key)}: each must be at least 1")
        if not 0 <= self.warmup_updates <= self.updates:
            raise UserError(
                f"bench.warmup_updates={self.warmup_updates}: from 0 to bench.updates={self.updates}"
            )
        if self.decoding_batch == 1:
            raise UserError("bench.decoding_batch=1: at least 2, as single sentences are measured besides")
        if not self.parts and not self.profile:
            raise UserError("bench.parts is empty: name at least one, or set bench.profile=true")
        if self.decoding_tokens < 2:
            raise UserError(f"bench.decoding_tokens={self.decoding_tokens}: must be at least 2, EOS included")
