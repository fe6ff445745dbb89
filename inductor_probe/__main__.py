"""`python -m inductor_probe` is `probe`."""

from inductor_probe.cli import main

if __name__ == "__main__":
    main()
