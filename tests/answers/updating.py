"""One step of a training loop, as many right answers take it."""


def updated(optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()
