SELECT name FROM zoo WHERE id = 1;
