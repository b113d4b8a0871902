//! The search's counters as the JSON object `statistics`: `{"<group>": {"<label value>": "<count>"}}`, with the phases' shares.

use serde::de::Deserializer;
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use superko_search::{Counter, Counters};

/// Counters of one search or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Statistics(pub Counters);

impl Serialize for Statistics {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut groups: Map<String, Value> = Map::new();
        for (counter, count) in self.0.iter() {
            let group = groups.entry(counter.group().name).or_insert_with(|| json!({}));
            group[counter.value()] = count.to_string().into();
        }
        let shares: Map<String, Value> = self.0.phase_shares().into_iter().map(|(phase, share)| (phase.to_owned(), share.into())).collect();
        let mut map = serializer.serialize_map(Some(groups.len() + 1))?;
        groups.iter().try_for_each(|(name, group)| map.serialize_entry(name, group))?;
        map.serialize_entry("phase_share", &shares)?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for Statistics {
    /// A counter that an earlier version did not have is zero, one that is no more is left out.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let groups = Map::deserialize(deserializer)?;
        let mut counters = Counters::default();
        for &counter in Counter::ALL {
            let text = groups.get(counter.group().name).and_then(|group| group.get(counter.value())).and_then(Value::as_str);
            counters.add(counter, text.map_or(Ok(0), str::parse).map_err(serde::de::Error::custom)?);
        }
        Ok(Statistics(counters))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_read_back() {
        let mut counters = Counters::default();
        for (index, &counter) in Counter::ALL.iter().enumerate() {
            counters.add(counter, (1 << 53) + index as u64);
        }
        let value = serde_json::to_value(Statistics(counters)).expect("JSON");
        assert_eq!(value["reuse_accepted"]["cube_and_filter"], "9007199254740992");
        let shares: f64 = value["phase_share"].as_object().expect("shares").values().filter_map(Value::as_f64).sum();
        assert!((shares - 1.0).abs() < 1e-9, "{shares}");
        let Statistics(back) = serde_json::from_value(value).expect("reads back");
        assert!(back.iter().eq(counters.iter()));
        assert_eq!(serde_json::from_value::<Statistics>(json!({"no_more": {"x": "1"}})).expect("reads").0, Counters::default());
    }
}
