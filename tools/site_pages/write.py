"""Hands the generated pages to mkdocs; run by its plug-in gen-files."""

import mkdocs_gen_files

from tools.site_pages import (
    cases,
    commands,
    data,
    drafters,
    engines,
    outputs,
    samples,
    schemas,
    worked,
)

for maker in (cases, commands, data, drafters, engines, outputs, samples, schemas, worked):
    for path, page in maker.pages():
        with mkdocs_gen_files.open(path, "w", encoding="utf-8") as file:
            file.write(page)
