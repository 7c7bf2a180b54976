"""Who proposes: mutators and orchestrators."""
