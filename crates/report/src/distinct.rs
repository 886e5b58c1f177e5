//! Short forms of names that remain different.

use std::collections::HashMap;

/// Returns the shortest form of each name that is the form of no other name. `forms` has those of each name, shortest
/// first.
pub fn distinct(forms: &[Vec<String>]) -> Vec<&str> {
    let mut levels = vec![0; forms.len()];
    loop {
        let mut count = HashMap::<&str, u32>::new();
        for (forms, level) in forms.iter().zip(&levels) {
            *count.entry(&forms[*level]).or_default() += 1;
        }
        let mut is_done = true;
        for (forms, level) in forms.iter().zip(&mut levels) {
            if count[&*forms[*level]] > 1 && *level + 1 < forms.len() {
                *level += 1;
                is_done = false;
            }
        }
        if is_done {
            let chosen = forms.iter().zip(levels);
            return chosen.map(|(forms, level)| &*forms[level]).collect();
        }
    }
}
