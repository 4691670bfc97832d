# docker build -t autograd-course . && docker run --rm -p 8888:8888 -v my-course:/home/learner/my-course autograd-course
# Untried: no Docker on the machine that this was written on.
FROM python:3.11-slim

# Both folders are the learner's: pip writes beside the sources, and a new volume takes the owner of the folder that it covers.
RUN useradd --create-home learner && install -d -o learner -g learner /home/learner/course /home/learner/my-course
USER learner
WORKDIR /home/learner/course
COPY --chown=learner . .
RUN python -m venv /home/learner/venv && \
    /home/learner/venv/bin/pip install --no-cache-dir --extra-index-url https://download.pytorch.org/whl/cpu torch==2.13.0+cpu && \
    /home/learner/venv/bin/pip install --no-cache-dir -c constraints.txt -e .
ENV PATH=/home/learner/venv/bin:$PATH COURSE_COPY=/home/learner/my-course
EXPOSE 8888
CMD ["course", "lab", "--ip", "0.0.0.0", "--port", "8888"]
