"""inductor_probe: a microscope for TorchInductor."""

__version__ = "0.1.0"
