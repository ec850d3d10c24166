// A value in one reference is a value: a change is seen by nobody else, and copies only what another one refers to.

import Testing

@testable import HTTPWire

@Suite struct CopyOnWriteTests {
    private struct Members {
        var text = "a"
        var list = [1]
    }

    @Test func aChangeIsSeenByOneValueAlone() {
        var first = CopyOnWrite(Members())
        var second = first
        second.members.text = "b"
        first.members.list.append(2)
        #expect(first.members.text == "a" && first.members.list == [1, 2])
        #expect(second.members.text == "b" && second.members.list == [1])
    }

    @Test func aValueThatIsAloneIsNotCopied() {
        var first = CopyOnWrite(Members())
        let box = ObjectIdentifier(first.box)
        first.members.text = "b"
        #expect(ObjectIdentifier(first.box) == box)
        let second = first
        first.members.text = "c"
        #expect(ObjectIdentifier(first.box) != box && ObjectIdentifier(second.box) == box)
    }
}
