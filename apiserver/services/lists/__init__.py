"""Lists of documents, as every `get_all` answers them: filters, order, pages, references."""
