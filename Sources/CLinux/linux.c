// C helpers for the room EventLoop.
