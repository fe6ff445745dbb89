"""Records to documents, and documents to a terminal, HTML and markdown: no reading, no conclusions.

`pages/` (records to documents, a module a subject), `document` (heading, facts, table, remark, code,
formula, picture, fold), `terminal`, `html`, `markdown` (the back ends), `json_form` (how much of an answer
is JSON), `github` (annotations, a job's summary), `wrapping` (where a text may be broken or cut), `words/`
(code to sentence; those of decisions are in `catalogue/`), `plots/` (SVG).

What was decided here:

- One view of one record. A page makes a document, which has no widths: a table says which columns go first
  where there is no room, a `Name` may lose its middle, a picture or a fold is made only by a back end that
  shows it. So a prompt, a notebook, a terminal and a pasted issue show the same, and a new output format is
  one module here.
"""
