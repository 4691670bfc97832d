"""What several answers of lesson 02 share."""

from collections import Counter

from torch.autograd.graph import get_gradient_edge


def nodes_behind(tensor):
    nodes = [get_gradient_edge(tensor).node]
    for node in nodes:
        nodes += [to for to in dict.fromkeys(to for to, _ in node.next_functions) if to and to not in nodes]
    return nodes


def edge_counts(nodes):
    """Count the edges to each node, and those that lead nowhere."""
    return Counter(to for node in nodes for to, _ in node.next_functions)
