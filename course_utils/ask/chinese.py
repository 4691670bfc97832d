"""Chinese and some Japanese words of titles, in the English of the entries: many user projects are asked in them."""

from __future__ import annotations

import re

# Each word and its English ones; the longest that fits is taken. Words that tell nothing are left out.
_TERMS = """
    下降 decrease
    不下降 not decreasing
    不匹配 mismatch
    不变 not changing
    不收敛 not decreasing
    不断增加 grows
    不更新 not updated
    中间 intermediate
    为0 zero
    为空 none
    为零 zero
    二分类 binary classification
    二阶 second order
    交叉熵 cross entropy
    优化器 optimizer
    余弦 cosine
    保存 save
    全连接 linear
    共享 share
    内存 memory
    内存泄漏 memory leak
    内存溢出 out of memory
    冻结 freeze
    准确率 accuracy
    分割 segmentation
    分布式 distributed
    分离 detach
    分类 classification
    初始化 initialization
    判别器 discriminator
    前向 forward
    前向传播 forward
    剪裁 clip
    加载 load
    动量 momentum
    勾配 gradient
    区别 difference
    半精度 float16
    卷积 convolution
    原地 inplace
    参数 parameters
    反向 backward
    反向传播 backward
    反转 reversal
    取反 reversal
    变慢 slower
    叶子 leaf
    同步 sync
    噪声 noise
    固定 freeze
    均值 mean
    填充 padding
    增加 grows
    复制 copy
    复现 reproduce
    多卡 multiple gpu
    多标签 multi label
    奖励 reward
    学习率 learning rate
    学习率不变 learning rate not changing
    学生 student
    学習 train
    学習率 learning rate
    对抗 adversarial
    导数 derivative
    就地 inplace
    层 layer
    嵌入 embedding
    差距 different
    平均 average
    张量 tensor
    强化学习 reinforcement learning
    归一化 normalization
    形状 shape
    循环神经网络 rnn
    微调 fine tuning
    快照 checkpoint
    恢复 resume
    惩罚 penalty
    截断 truncated
    批归一化 batch norm
    批次 batch
    报错 error
    拷贝 copy
    损失 loss
    损失函数 loss function
    推断 inference
    推理 inference
    掩码 mask
    損失 loss
    改变 change
    教师 teacher
    数据 data
    方差 variance
    无输出 never called
    显存 gpu memory
    显存不足 out of memory
    显存泄漏 gpu memory leak
    显存溢出 out of memory
    更新 update
    最適化 optimizer
    权重 weights
    权重衰减 weight decay
    标签 label
    标量 scalar
    样本 sample
    梯度 gradient
    梯度反转 gradient reversal
    梯度惩罚 gradient penalty
    梯度消失 vanishing gradients
    梯度爆炸 exploding gradients
    梯度累加 gradient accumulation
    梯度累积 gradient accumulation
    梯度裁剪 gradient clipping
    模型 model
    模式 mode
    正则化 regularization
    步 step
    步数 steps
    求导 derivative
    没有变化 not changing
    没有更新 not updated
    泄漏 leak
    泄露 leak
    注意力 attention
    测试 eval
    海森 hessian
    混合精度 mixed precision
    清零 zero grad
    溢出 overflow
    激活 activation
    激活函数 activation function
    爆显存 out of memory
    生成器 generator
    目标 target
    目标网络 target network
    相同 same
    第二次 second time
    策略 policy
    精度 accuracy
    索引 index
    累加 accumulate
    累积 accumulation
    统计 statistics
    继续训练 resume training
    维度 dimension
    网络 network
    自动微分 autograd
    自动求导 autograd
    范数 norm
    蒸馏 distillation
    衰减 decay
    裁剪 clip
    解冻 unfreeze
    计算图 graph
    训练 train
    评估 eval
    词向量 embedding
    调度 scheduler
    输入 input
    输出 output
    速度 speed
    重み weights
    重复 repeated
    鉴别器 discriminator
    钩子 hook
    错误 error
    降低 decrease
    随机 random
    隐藏状态 hidden state
    雅可比 jacobian
    顺序 order
    预测 predictions
    预热 warmup
    预训练 pretrained
    验证 validation
    验证集 validation
"""
_ENGLISH = {line.split()[0]: line.split()[1:] for line in _TERMS.strip().splitlines()}

# What is written without spaces between words: Chinese and the Japanese that is mixed with it (with the 0 of a word
# that ends in it), and what is not.
_HAN = "\u3040-\u30ff\u3400-\u9fff"
_RUN = re.compile(f"[{_HAN}]+0?|[^{_HAN}]+")
_TERM = re.compile("|".join(sorted(_ENGLISH, key=len, reverse=True)))


def pieces(text: str) -> list[str]:
    """Return a name as its runs in Latin letters and, in their place, the English of the Chinese words between them."""
    return [word for run in _RUN.findall(text) for word in (_english(run) if re.match(f"[{_HAN}]", run) else [run])]


def _english(run: str) -> list[str]:
    return [word for term in _TERM.findall(run) for word in _ENGLISH[term]]
