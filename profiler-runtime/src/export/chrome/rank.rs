//! Which of a job's processes this one is, as launchers say it in variables.

/// For each launcher, the variables that hold the rank and the number of processes.
const LAUNCHERS: [(&str, &str); 5] = [
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("PMIX_RANK", "PMIX_SIZE"),
    // Last: a job step may start a launcher of its own, which knows better.
    ("SLURM_PROCID", "SLURM_NTASKS"),
];

/// A place among the processes of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rank {
    pub(super) rank: u64,
    /// None where no variable says it.
    pub(super) world_size: Option<u64>,
}

impl Rank {
    /// As the first launcher says it that says anything.
    pub(super) fn find(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let number = |name: &str| variable(name)?.trim().parse().ok();
        LAUNCHERS.iter().find_map(|(rank, size)| {
            Some(Self {
                rank: number(rank)?,
                world_size: number(size),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(variables: &[(&str, &str)]) -> Option<Rank> {
        Rank::find(|name| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn each_launcher_is_understood() {
        for (rank, size) in LAUNCHERS {
            let found = find(&[(rank, "3"), (size, "8")]);
            assert_eq!(
                found,
                Some(Rank {
                    rank: 3,
                    world_size: Some(8)
                }),
                "{rank}"
            );
        }
        assert_eq!(find(&[]), None);
        assert_eq!(find(&[("RANK", "first"), ("WORLD_SIZE", "8")]), None);
        assert_eq!(
            find(&[("RANK", "1")]),
            Some(Rank {
                rank: 1,
                world_size: None
            })
        );
    }

    #[test]
    fn who_started_the_process_knows_better_than_who_started_the_job() {
        let both = [
            ("SLURM_PROCID", "0"),
            ("SLURM_NTASKS", "2"),
            ("RANK", "5"),
            ("WORLD_SIZE", "16"),
        ];
        assert_eq!(
            find(&both),
            Some(Rank {
                rank: 5,
                world_size: Some(16)
            })
        );
    }
}
