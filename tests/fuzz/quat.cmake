whit_fuzz(quat_file)
