"""Every setting: its name, type, default and meaning, and where its value comes from."""
