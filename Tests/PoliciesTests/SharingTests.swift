// Whether a fetch that nobody waits for goes on.

import Policies
import Testing

struct SharingTests {
    @Test(
        "a fetch without readers goes on or ends",
        arguments: [
            (AbandonmentPolicy.finish, 0, nil, true), (.finish, 5, 10, true), (.abort, 9, 10, false),
            (.abort, 10, nil, false),
            (.finishBeyond(0.5), 4, 10, false), (.finishBeyond(0.5), 5, 10, true), (.finishBeyond(0.5), 6, 10, true),
            (.finishBeyond(0.5), 1_000, nil, false), (.finishBeyond(0), 0, 10, true), (.finishBeyond(1), 9, 10, false),
            (.finishBeyond(1), 10, 10, true), (.finishBeyond(0.5), 0, 0, true),
        ] as [(AbandonmentPolicy, Int64, Int64?, Bool)]
    )
    func goesOn(_ policy: AbandonmentPolicy, _ received: Int64, _ length: Int64?, _ expected: Bool) {
        #expect(policy.goesOn(received: received, length: length) == expected)
    }
}
