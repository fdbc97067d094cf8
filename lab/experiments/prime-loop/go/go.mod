module prime-loop

go 1.23.0
