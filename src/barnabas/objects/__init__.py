"""Files in directories and objects in object stores, behind one protocol."""
