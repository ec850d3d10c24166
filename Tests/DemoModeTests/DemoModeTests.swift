// Tests of DemoMode.
