def run_mutations(count, seed, jobs, folder):
    return 0
