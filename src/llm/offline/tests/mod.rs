//! The embedded model against a catalogue of strangers' scenes, through prompts as they are built.

mod changed;
mod contract;
mod days;
mod domains;
mod flow;
mod modify;
mod more;
mod paraphrases;
mod prepared;
mod readers;
mod robust;
mod scenarios;
mod shipped;
mod stranger;
mod support;
