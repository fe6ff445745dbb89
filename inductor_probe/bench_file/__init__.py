"""`output_code.py` to a standalone bench file, and to its text when edits in it are carried over.

What was decided here:

- A graph's constants are the real ones. A dump keeps them (`capture/constants.py`): a packed weight as what
  it was packed from and the call, since nothing may be unpickled. A bench file makes that call again, and
  compares each file with its digest in the manifest. Without a constant, what takes it is neither judged
  nor timed.
- An edit is never written over. A bench file that is written again changes places with the one on disk, and
  what comes out is compared with what was read (`files.replace_unchanged`); where they differ all is done
  once more.
"""
