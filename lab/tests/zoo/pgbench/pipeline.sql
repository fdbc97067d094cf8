\startpipeline
SELECT name FROM zoo WHERE id = 1;
SELECT name FROM zoo WHERE id = 2;
SELECT name FROM zoo WHERE id = 3;
\endpipeline
