// Nothing: what unit tests include is compiled with this, once.
