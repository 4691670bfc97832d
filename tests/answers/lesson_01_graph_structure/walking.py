"""What several answers of lesson 01 share."""

from torch.autograd.graph import get_gradient_edge


def walk_a_growing_list(tensor):
    if not tensor.requires_grad:
        return []
    nodes = [get_gradient_edge(tensor).node]
    seen = set(nodes)
    for node in nodes:
        for to, _ in node.next_functions:
            if to is not None and to not in seen:
                seen.add(to)
                nodes.append(to)
    return nodes


def walk_every_path(tensor):
    nodes = walk_start(tensor)
    for node in nodes:
        nodes += [to for to, _ in node.next_functions if to is not None]
    return nodes


def walk_start(tensor):
    return [get_gradient_edge(tensor).node] if tensor.requires_grad else []


def walk_recursive(tensor):
    seen = {}

    def visit(node):
        if node is not None and node not in seen:
            seen[node] = True
            for to, _ in node.next_functions:
                visit(to)

    for node in walk_start(tensor):
        visit(node)
    return list(seen)
