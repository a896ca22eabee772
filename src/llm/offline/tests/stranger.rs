//! Scenes added later, by people who never saw the rules: alone and joined with Weather.

