// Whether a fetch that nobody waits for goes on.

import Policies
import Testing

struct SharingTests {
    @Test(
        "a fetch without readers goes on or ends",
        arguments: [
            (ClientAbort.finish, 0, nil, true), (.finish, 5, 10, true), (.abort, 9, 10, false),
            (.abort, 10, nil, false),
            (.finishIf(0.5), 4, 10, false), (.finishIf(0.5), 5, 10, true), (.finishIf(0.5), 6, 10, true),
            (.finishIf(0.5), 1_000, nil, false), (.finishIf(0), 0, 10, true), (.finishIf(1), 9, 10, false),
            (.finishIf(1), 10, 10, true), (.finishIf(0.5), 0, 0, true),
        ] as [(ClientAbort, Int64, Int64?, Bool)]
    )
    func goesOn(_ policy: ClientAbort, _ received: Int64, _ length: Int64?, _ expected: Bool) {
        #expect(policy.goesOn(received: received, length: length) == expected)
    }
}
