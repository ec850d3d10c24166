// The room DemoMode.
