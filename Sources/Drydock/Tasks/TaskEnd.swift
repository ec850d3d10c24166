// What is told of the end of a task to those who listen to its queue.

public import HTTPTypes

/// The end of one task of a queue, as those hear of it who listen to the queue.
public struct TaskEnd<Value: Sendable>: Sendable {
    /// The task's ``Work/name``.
    public let name: String
    /// The task's ``Work/method``.
    public let method: HTTPRequest.Method
    /// How it ended: ``TaskState/Phase/done``, ``TaskState/Phase/failed`` or ``TaskState/Phase/cancelled``.
    public let state: TaskState
    /// Its value, or why there is none.
    public let result: Result<Value, TaskQueueError>
}

/// The end of a task of any type, with the type that it has.
struct AnyTaskEnd: Sendable {
    private let end: any TaskEndOfType
    let name: String
    let method: HTTPRequest.Method

    init<Value>(_ end: TaskEnd<Value>) {
        self.end = end
        name = end.name
        method = end.method
    }

    /// Nil where the task has another type.
    func typed<Value>(_ type: Value.Type) -> TaskEnd<Value>? { end as? TaskEnd<Value> }

    func isOf<Value: Sendable>(_ type: Value.Type) -> Bool { end is TaskEnd<Value> }

    var untyped: TaskEnd<any Sendable> { end.untyped }
}

private protocol TaskEndOfType: Sendable {
    var untyped: TaskEnd<any Sendable> { get }
}

extension TaskEnd: TaskEndOfType {
    fileprivate var untyped: TaskEnd<any Sendable> {
        TaskEnd<any Sendable>(name: name, method: method, state: state, result: result.map { $0 })
    }
}
