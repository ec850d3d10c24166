// Tests of Scenario.
