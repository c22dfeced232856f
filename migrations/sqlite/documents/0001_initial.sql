-- Collections are tables that the store makes as they are first named (`sqlite/table.py`). The number says whose file it is.
PRAGMA application_id = 1163281491;
