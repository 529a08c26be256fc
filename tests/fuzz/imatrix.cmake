whit_fuzz(imatrix)
