"""The command line: arguments, printing, environment variables, exit codes. Only here is printed."""
