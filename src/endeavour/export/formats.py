"""Which exports there are, and what their folders are called. Knows no model and none of their packages."""

from pathlib import Path

FORMATS = ("ctranslate2", "huggingface")
QUANTIZATIONS = ("int8", "float32")


def folder_name(format: str, quantization: str) -> str:
    """Below `<run>/export/`; one format and quantization never overwrite another. Hugging Face's is float32."""
    return f"{format}-{quantization}" if format == "ctranslate2" else format


def export_folder(run: Path, format: str, quantization: str) -> Path:
    return run / "export" / folder_name(format, quantization)
