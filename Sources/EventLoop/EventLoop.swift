// The room EventLoop.
