//! Arms that differ in one thing only: what differs between their figures, that thing caused.

use assay_captures::run_record::Arm;

use crate::compare::ArmName;

/// Two arms of one subject whose environments differ in one variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ablation {
    /// The variable.
    pub variable: String,
    /// The arm that the experiment lists first.
    pub one: ArmName,
    /// Its value of the variable; `None` when unset.
    pub one_value: Option<String>,
    /// The other arm.
    pub other: ArmName,
    /// Its value of the variable; `None` when unset.
    pub other_value: Option<String>,
}

/// The name of an arm.
#[must_use]
pub fn name(arm: &Arm) -> ArmName {
    ArmName { subject: arm.subject.clone(), variant: arm.variant.clone() }
}

/// All pairs that differ in one variable, in the order of the arms.
#[must_use]
pub fn ablations(arms: &[Arm]) -> Vec<Ablation> {
    let mut pairs = Vec::new();
    for (index, one) in arms.iter().enumerate() {
        let later = arms[index + 1..].iter().filter(|other| other.subject == one.subject);
        pairs.extend(later.filter_map(|other| ablation(one, other)));
    }
    pairs
}

fn ablation(one: &Arm, other: &Arm) -> Option<Ablation> {
    let mut variables: Vec<&String> =
        one.environment.keys().chain(other.environment.keys()).collect();
    variables.sort_unstable();
    variables.dedup();
    let mut different = variables
        .into_iter()
        .filter(|variable| one.environment.get(*variable) != other.environment.get(*variable));
    let variable = different.next()?;
    if different.next().is_some() {
        return None;
    }
    Some(Ablation {
        variable: variable.clone(),
        one: name(one),
        one_value: one.environment.get(variable).cloned(),
        other: name(other),
        other_value: other.environment.get(variable).cloned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arm(subject: &str, variant: &str, environment: &[(&str, &str)]) -> Arm {
        Arm {
            subject: subject.into(),
            variant: variant.into(),
            title: variant.into(),
            environment: environment
                .iter()
                .map(|&(key, value)| (key.to_owned(), value.to_owned()))
                .collect(),
        }
    }

    #[test]
    fn only_pairs_of_one_subject_with_one_difference_count() {
        let arms = [
            arm("shop", "a", &[("ACQUIRE", "query"), ("PING", "on")]),
            arm("shop", "b", &[("ACQUIRE", "query"), ("PING", "off")]),
            arm("shop", "c", &[("ACQUIRE", "page")]),
            arm("till", "d", &[("ACQUIRE", "query"), ("PING", "off")]),
        ];
        let found = ablations(&arms);
        let [only] = &found[..] else { panic!("{found:?}") };
        assert_eq!((only.variable.as_str(), only.other.variant.as_str()), ("PING", "b"));
        assert_eq!(only.one_value.as_deref(), Some("on"));
    }

    #[test]
    fn an_unset_variable_differs_from_a_set_one() {
        let arms = [arm("shop", "a", &[]), arm("shop", "b", &[("PING", "off")])];
        assert_eq!(ablations(&arms)[0].one_value, None);
    }
}
