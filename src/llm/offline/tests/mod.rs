//! Tests the embedded model against scenes unknown when its rules were written, through real prompts.

mod acts;
mod background;
mod changed;
mod clear;
mod contract;
mod days;
mod domains;
mod flow;
mod flow_parts;
mod halves;
mod lists;
mod modify;
mod more;
mod paraphrases;
mod prepared;
mod readers;
mod robust;
mod scenarios;
mod services;
mod shipped;
mod speech;
mod stranger;
mod support;
mod tuples;
mod unserved;
mod values;
