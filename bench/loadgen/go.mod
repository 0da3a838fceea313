module barnabas.bench

go 1.24
