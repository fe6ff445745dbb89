"""Records to documents, a module for each subject. Nothing here knows which back end will write them."""
