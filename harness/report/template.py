"""Pages made from templates: everything is escaped, and an undefined name is an error."""

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined, Template


@cache
def template(package: str, name: str) -> Template:
    """The template of this name in the folder ``templates`` of a package."""
    environment = Environment(
        loader=PackageLoader(package), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template(name)
