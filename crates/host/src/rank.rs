//! The rank of this process in its job, from the variables of launchers.

use crate::diagnostics::warn_once;

/// The variables with the rank and the number of processes, for each launcher.
const LAUNCHERS: [(&str, &str); 5] = [
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("PMIX_RANK", "PMIX_SIZE"),
    // SLURM comes last: a job step may start another launcher, whose rank is the right one.
    ("SLURM_PROCID", "SLURM_NTASKS"),
];

/// The rank of a process in its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rank {
    /// The rank, from 0 on.
    pub rank: u64,
    /// The number of processes of the job; `None` if no variable says it.
    pub world_size: Option<u64>,
}

/// Returns the rank of this process in its job, if a launcher set one.
pub fn own_rank() -> Option<u64> {
    Rank::of_process().map(|rank| rank.rank)
}

/// Returns the rank of this process, without a warning about a variable that is not a number: nothing is named after it.
pub fn own_rank_quietly() -> Option<u64> {
    Rank::find(variable, |_, _| {}).map(|rank| rank.rank)
}

fn variable(name: &str) -> Option<String> {
    Some(std::env::var_os(name)?.to_string_lossy().into_owned())
}

impl Rank {
    /// Returns the rank of this process, from the first launcher that set one.
    pub fn of_process() -> Option<Self> {
        Self::find(variable, |name, value| {
            warn_once(&format!(
                "{name} is `{value}`, which is not a whole number: traces and their names do not follow it; put it \
                 right, or unset it"
            ));
        })
    }

    /// Returns the rank; `refuse` is called for each variable whose value is not a number.
    fn find(
        variable: impl Fn(&str) -> Option<String>,
        mut refuse: impl FnMut(&str, &str),
    ) -> Option<Self> {
        let mut number = |name: &str| {
            let value = variable(name).filter(|value| !value.trim().is_empty())?;
            let number = value.trim().parse().ok();
            if number.is_none() {
                refuse(name, &value);
            }
            number
        };
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
        found_and_refused(variables).0
    }

    /// Returns the rank, and the variables that were refused.
    fn found_and_refused(variables: &[(&str, &str)]) -> (Option<Rank>, Vec<String>) {
        let variable = |name: &str| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let mut refused = Vec::new();
        let found = Rank::find(variable, |name, value| {
            refused.push(format!("{name}={value}"));
        });
        (found, refused)
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
    fn what_is_no_number_is_refused_and_the_next_launcher_asked() {
        let variables = [
            ("RANK", "first"),
            ("WORLD_SIZE", "8"),
            ("PMI_RANK", " 2 "),
            ("PMI_SIZE", "-4"),
            ("OMPI_COMM_WORLD_RANK", ""),
        ];
        let (found, refused) = found_and_refused(&variables);
        assert_eq!(
            found,
            Some(Rank {
                rank: 2,
                world_size: None
            })
        );
        assert_eq!(refused, ["RANK=first", "PMI_SIZE=-4"]);
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
