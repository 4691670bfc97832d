"""Exercises of lesson 01: reading the recorded graph, building one of a given shape, and repairing one that is cut."""

from __future__ import annotations

from course_utils.checks.exercise import Exercise, Misconception
from course_utils.checks.lessons import models_01 as models
from course_utils.checks.lessons import reading_01 as reading
from course_utils.checks.lessons.predictions import one_case

LESSON = "01_graph_structure"


predict_leaves = Exercise(
    id="predict_leaves",
    title="Predict the leaves",
    lesson=LESSON,
    difficulty=1,
    minutes=5,
    points=1,
    call=None,
    cases=one_case,
    judge=reading.judge_leaves,
    hints=(
        "Ask one question of each tensor: did a recorded operation make it?",
        "An operation is recorded when gradients are on and one of its inputs requires a gradient. "
        "detach() and nn.Parameter give tensors that start without history.",
        "Go through the lines. Only w requires a gradient at the start. For each line find out whether a tensor that "
        "requires a gradient goes in, whether recording is on, and whether .to() has anything to convert.",
    ),
    misconceptions=(
        Misconception(
            "only with requires_grad",
            "You called every tensor without requires_grad a non-leaf. is_leaf asks whether a recorded operation "
            "made the tensor. It does not ask whether the tensor requires a gradient.",
            lambda case, seen: reading.predicts(seen, lambda tensor: tensor.is_leaf and tensor.requires_grad),
        ),
        Misconception(
            "only the first",
            "You called everything that was computed a non-leaf. Only operations that autograd records count.",
            lambda case, seen: reading.predicts_only(seen, ("plain",)),
        ),
        Misconception(
            "to() always converts",
            "All entries but `same` are right. to() with the dtype that the tensor already has makes no new tensor.",
            lambda case, seen: reading.predicts(seen, lambda tensor: tensor.is_leaf, but="same"),
        ),
    ),
)

predict_graph = Exercise(
    id="predict_graph",
    title="Predict a graph",
    lesson=LESSON,
    difficulty=2,
    minutes=8,
    points=2,
    call=None,
    cases=one_case,
    judge=reading.judge_facts,
    hints=(
        "Draw it on paper: one box for each operation, one for each leaf, and arrows from results to inputs.",
        "h is computed once and used three times. c requires no gradient, so it gets no box.",
        "From the result down: a sum, an addition, two multiplications, tanh, one multiplication, two leaves. "
        "Now count boxes, arrows into tanh, inputs without an arrow, and routes from the top to a leaf.",
    ),
    misconceptions=(
        Misconception(
            "a tree",
            "You counted what is below h once for each use of h. h was computed once, so it is there once.",
            lambda case, seen: reading.counts(seen, nodes=16) or reading.counts(seen, leaves=6),
        ),
        Misconception(
            "leaves forgotten",
            "You counted the operations only. A leaf has a node too, its AccumulateGrad.",
            lambda case, seen: reading.counts(seen, nodes=6, leaves=2),
        ),
        Misconception(
            "constants counted",
            "You counted c as a leaf of the graph. It needs no gradient, so no node stands for it.",
            lambda case, seen: reading.counts(seen, nodes=9, leaves=3),
        ),
        Misconception(
            "edges as nodes",
            "You counted one edge for each operation that uses h. h * h uses it twice, through two edges.",
            lambda case, seen: reading.counts(seen, nodes=8, edges_into_tanh=2),
        ),
    ),
)

walk = Exercise(
    id="walk",
    title="Walk every node once",
    lesson=LESSON,
    difficulty=2,
    minutes=15,
    points=2,
    call="walk(tensor)",
    cases=reading.walk_cases,
    judge=reading.judge_walk,
    hints=(
        "A node can be reached by more than one edge. Remember which nodes you have seen.",
        "Keep a list of nodes whose inputs you have still to look at, and a set of all nodes seen. No function has "
        "to call itself. get_gradient_edge(tensor).node is the start, for a leaf as well.",
        "If the tensor requires no gradient, return an empty list. Otherwise start a list and a set with the first "
        "node. Go through the list while it grows: for each (node, index) in next_functions, skip None and nodes in "
        "the set, and append the others to both.",
    ),
    misconceptions=(
        Misconception(
            "every path",
            "Your walk visits a node again for every path that leads to it. Shared nodes appear several times, and "
            "40 doublings have 2**40 paths.",
            reading.every_path,
            ended=("TimedOut",),
            ended_in=("40 doublings", "a recurrent loop"),
        ),
        Misconception(
            "every output",
            "You remember pairs of node and output. A node that is reached at two outputs stands in your list twice.",
            reading.by_pairs,
        ),
        Misconception(
            "recursion",
            "Your walk calls itself once for each node on the way. Python stops that after a few thousand calls, and "
            "a loop of a few thousand steps makes a graph that is deeper.",
            ended=("RecursionError",),
            ended_in=("a chain of 3,500 operations",),
        ),
        Misconception(
            "pairs",
            "Your list holds the pairs from next_functions. Each pair is a node and an output index; "
            "the exercise asks for the nodes.",
            lambda case, seen: reading.holds(seen, "tuple"),
        ),
        Misconception(
            "None kept",
            "Your list holds None. It stands in next_functions for an input that needs no gradient: no node is there.",
            lambda case, seen: reading.holds(seen, "NoneType"),
        ),
        Misconception(
            "leaves left out",
            "Your walk returns the operations and leaves out the nodes called AccumulateGrad.",
            reading.only_operations,
        ),
        Misconception(
            "nothing for a leaf",
            "For a tensor that is itself a leaf, grad_fn is None, and your walk returned an empty list.",
            reading.nothing_for_a_leaf,
        ),
        Misconception(
            "None followed",
            "Your walk asks None for its next_functions. None stands in a node's next_functions for each input that "
            "needs no gradient.",
            ended=("AttributeError",),
            ended_in=("an input that needs no gradient", "a random graph", "a recurrent loop"),
        ),
        Misconception(
            "None as the start",
            "Your walk takes grad_fn for a node where it is None: at a leaf, and at a tensor without a graph.",
            ended=("AttributeError",),
            ended_in=("a leaf", "a tensor without a graph"),
        ),
        Misconception(
            "remembers the last call",
            "Your first call is right and your second one is not: what the first has seen is still remembered. "
            "Create the list and the set inside the function.",
            reading.only_later_calls_wrong,
        ),
    ),
)

leaves_of = Exercise(
    id="leaves_of",
    title="Find the leaves an output depends on",
    lesson=LESSON,
    difficulty=2,
    minutes=10,
    points=2,
    call="leaves_of(tensor)",
    cases=reading.leaves_cases,
    judge=reading.judge_leaves_of,
    hints=(
        "Your walk already visits the nodes of the leaves. Which nodes are they, and what do they know?",
        "A leaf's node is called AccumulateGrad, and its attribute `variable` is the leaf itself.",
        "Walk the graph, keep the nodes that have the attribute `variable`, and return that attribute of each. "
        "Do not copy or detach it.",
    ),
    misconceptions=(
        Misconception(
            "nodes, not tensors",
            "You returned nodes called AccumulateGrad. The exercise asks for the tensors that they accumulate into.",
            reading.returned_nodes,
        ),
        Misconception(
            "copies",
            "You returned tensors with the right numbers that are other objects than the leaves. "
            "An optimizer could do nothing with them.",
            reading.returned_copies,
        ),
        Misconception(
            "once per path",
            "Your list names a leaf again for every path that leads to it.",
            reading.repeated_leaves,
            ended=("TimedOut",),
            ended_in=("40 doublings", "a recurrent loop"),
        ),
        Misconception(
            "recursion",
            "Your search calls itself once for each node on the way. Python stops that after a few thousand calls.",
            ended=("RecursionError",),
            ended_in=("a chain of 3,500 operations",),
        ),
        Misconception(
            "frozen later",
            "Your list lacks w, which was frozen after the forward pass. It is still in the graph.",
            reading.frozen_left_out,
        ),
        Misconception(
            "a leaf without a graph",
            "You returned the tensor itself. It is a leaf, but it requires no gradient, so no graph leads to it; "
            "the list should be empty.",
            reading.returned_itself,
        ),
    ),
)

used_outputs = Exercise(
    id="used_outputs",
    title="Which outputs are used?",
    lesson=LESSON,
    difficulty=3,
    minutes=15,
    points=3,
    call="used_outputs(tensor, node)",
    cases=reading.outputs_cases,
    judge=reading.judge_outputs,
    hints=(
        "An edge is a pair. The second number says at which output of the node it arrives.",
        "Look at every edge of the graph, and at the one edge that is in no next_functions: the one from the tensor.",
        "If the tensor requires no gradient, return an empty list. Otherwise put get_gradient_edge(tensor) and every "
        "pair in the next_functions of every node through one test: is the pair's node the node asked about? "
        "Collect the indices in a set, and return them sorted.",
    ),
    misconceptions=(
        Misconception(
            "one entry per edge",
            "Your list has an entry for each edge or path. The question is which outputs are used, not how often.",
            reading.repeated_outputs,
        ),
        Misconception(
            "all outputs",
            "You listed all outputs that the operation has. The graph behind the tensor need not reach all of them.",
            reading.all_outputs,
        ),
        Misconception(
            "own output missing",
            "You looked at the edges between nodes only. Where the tensor is itself an output of the node, "
            "no node's next_functions has that edge.",
            reading.own_output_missing,
        ),
        Misconception(
            "any node of that name",
            "You counted the outputs of another operation of the same kind. Two nodes can have one name.",
            reading.by_name_only,
        ),
        Misconception(
            "only the first edge",
            "You look only at the first edge that arrives at the node. A node that was seen before can still be "
            "reached at other outputs.",
            reading.first_edge_only,
        ),
        Misconception(
            "recursion",
            "Your search calls itself once for each node on the way. Python stops that after a few thousand calls.",
            ended=("RecursionError",),
            ended_in=("a chain of 3,500 operations",),
        ),
    ),
)

build_graph = Exercise(
    id="build_graph",
    title="Build a graph of a given shape",
    lesson=LESSON,
    difficulty=3,
    minutes=12,
    points=3,
    call="build_graph(a, b)",
    cases=models.build_cases,
    judge=models.judge_build,
    hints=(
        "Read the text from the last line up: first what is made of a and b, at the end what makes the result.",
        "Node 2 is reached by two edges, so its result is used twice. The entry `none` is an input that needs no "
        "gradient, and `3 (output 1)` is the second output of node 3.",
        "Subtract b from a. Take the second of the tensors that unbind() gives, and its exponential. Multiply that by "
        "a number, and add the product and the exponential, in this order.",
    ),
    misconceptions=(
        Misconception(
            "computed twice",
            "Your graph has two nodes ExpBackward0: you computed the exponential twice. "
            "Compute it once and use the result twice.",
            models.calculated_twice,
        ),
        Misconception(
            "indexing",
            "Your graph has a SelectBackward0. Indexing one row records an operation with a single output, not unbind.",
            models.selected,
        ),
        Misconception(
            "no constant",
            "Your multiplication has two inputs that need a gradient. "
            "In the wanted graph one of its inputs needs none.",
            models.no_none,
        ),
        Misconception(
            "other order",
            "Your graph has the right nodes and edges, but an operation has its inputs in another order. "
            "The order of the operands decides.",
            models.other_order,
        ),
    ),
)

connected_loss = Exercise(
    id="connected_loss",
    title="Repair a loss whose graph is cut",
    lesson=LESSON,
    difficulty=4,
    minutes=20,
    points=4,
    call="connected_loss(model, x, target)",
    cases=models.loss_cases,
    judge=models.judge_loss,
    hints=(
        "Trace what broken_loss returns. Then go up through its lines and trace every intermediate result.",
        "A result stays in the graph only if it comes from recorded operations. item(), numpy(), detach(), "
        "torch.tensor(...) and nn.Parameter(...) each give a tensor or number without history. "
        "x -= ... writes into the caller's tensor.",
        "Keep the formula. Make a new tensor in place of writing to x, multiply by the gate itself, use the product "
        "without wrapping it, multiply by exp() of the scale as a tensor, and return the mean itself.",
    ),
    misconceptions=(
        Misconception(
            "a flag on a copy",
            "Your loss is a new leaf with requires_grad=True. The flag lets backward() start without an error, "
            "but nothing behind the loss is recorded, so no parameter gets a gradient.",
            models.flag_on_a_copy,
        ),
        Misconception(
            "a leaf made on the way",
            "The graph of your loss ends in a leaf that your function made: by nn.Parameter, by requires_grad_(), or "
            "by copying the model. Gradients stop there and do not reach what it was made from.",
            models.wrapped_again,
        ),
        Misconception(
            "one path still cut",
            "Every parameter is reached, and yet some gradients are wrong. A parameter can be reached on one path "
            "while another path to it is still cut.",
            models.one_path_cut,
        ),
        Misconception(
            "input overwritten",
            "Your function writes into the caller's x. The second epoch would start from other data than the first.",
            models.input_overwritten,
        ),
    ),
)

without_gradient = Exercise(
    id="without_gradient",
    title="Name the parameters that will not learn",
    lesson=LESSON,
    difficulty=4,
    minutes=20,
    points=4,
    call="without_gradient(model, loss)",
    cases=models.model_cases,
    judge=models.judge_names,
    hints=(
        "Which tensors does the graph of the loss end in? Compare them with the model's parameters, "
        "as objects and not by their numbers.",
        "named_parameters() gives a shared parameter under its first name only. remove_duplicate=False gives every "
        "name. And the flag requires_grad may have changed since the graph was recorded.",
        "Collect the ids of the leaves behind the loss that require a gradient now. Go through "
        "model.named_parameters(remove_duplicate=False), and keep each name whose parameter's id is not among them. "
        "Sort the names.",
    ),
    misconceptions=(
        Misconception(
            "frozen only",
            "You listed the parameters with requires_grad=False. A parameter that requires a gradient gets none either "
            "where the graph of the loss does not reach it.",
            models.only_frozen,
        ),
        Misconception(
            "frozen left out",
            "You left out the parameters with requires_grad=False. They get no gradient from this loss either.",
            models.frozen_left_out,
        ),
        Misconception(
            "second name left out",
            "A parameter that two layers share has two names, and you list only the first.",
            models.second_name_left_out,
        ),
        Misconception(
            "ran backward",
            "Your function runs a backward pass to find out. The graph tells it before any pass: "
            "nothing has to be run, and nothing has to be freed.",
            models.ran_backward,
        ),
        Misconception(
            "reached is enough",
            "You went by the graph alone. A parameter that was frozen after the forward pass is still in the graph, "
            "and its node gives it no gradient.",
            models.frozen_too_late,
        ),
        Misconception(
            "equal numbers",
            "You compare numbers. Two different parameters can hold equal numbers; compare the objects.",
            models.compared_numbers,
        ),
        Misconception(
            "buffers",
            "You list buffers. The names asked for are those of parameters.",
            models.buffers_too,
        ),
        Misconception(
            "a loss without a graph",
            "A loss without a graph gives no parameter a gradient. All names belong in the list.",
            models.nothing_without_a_graph,
        ),
        Misconception(
            "stored .grad",
            "You looked at .grad. It tells what earlier passes left.",
            models.by_stored_grad,
        ),
        Misconception(
            "recursion",
            "Your search calls itself once for each node on the way. Python stops that after a few thousand calls.",
            ended=("RecursionError",),
            ended_in=("a chain of 3,500 operations",),
        ),
    ),
)

EXERCISES = (
    predict_leaves,
    predict_graph,
    walk,
    leaves_of,
    used_outputs,
    build_graph,
    connected_loss,
    without_gradient,
)
