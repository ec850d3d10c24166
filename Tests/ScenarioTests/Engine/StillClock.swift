// A clock that stands still: a daemon's lifetimes and ages count from one second, and only `drydock clock` moves it.

import Foundation
import TestSupport

/// A library for `LD_PRELOAD` that stops CLOCK_REALTIME_COARSE, which `WallClock` alone reads: whatever waits, and
/// whatever writes a date into a log, has the time that it is.
struct StillClock: Sendable {
    /// What the clock shows before it is moved, in seconds since 1970.
    let second: Int64
    private let folder: TemporaryFolder

    init() throws {
        second = Int64(time(nil))
        folder = try TemporaryFolder("clock")
        let source = try folder.write("still_clock.c", Self.source(second))
        try Shell.must(
            "cc",
            ["-O2", "-Wall", "-Wextra", "-shared", "-fPIC", "-o", folder.file("still_clock.so"), source]
        )
    }

    /// What a daemon has to find in its environment when it starts.
    var environment: [String: String] { ["LD_PRELOAD": folder.file("still_clock.so")] }

    /// Starts a daemon that goes by this clock; to be moved, it needs `clock: { movable: true }` in its file.
    func daemon(_ settings: DaemonSettings, at home: DaemonHome? = nil) throws -> Daemon {
        try Daemon(settings, at: home, environment: environment)
    }

    private static func source(_ second: Int64) -> String {
        """
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <time.h>

        int clock_gettime(clockid_t clock, struct timespec *time) {
            static int (*real)(clockid_t, struct timespec *);
            if (clock == CLOCK_REALTIME_COARSE) {
                time->tv_sec = \(second);
                time->tv_nsec = 0;
                return 0;
            }
            if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
            return real(clock, time);
        }

        """
    }
}
