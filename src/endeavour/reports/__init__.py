"""What people look at: pages from Jinja2 templates, tables for the terminal, charts by matplotlib."""
