# Equipoise from its source, without a compiler in the image: the wheel is built in one stage and installed in the next.
#   docker build -t equipoise .
#   docker run --rm -v "$PWD:/data" equipoise embed digits
FROM python:3.12 AS build
WORKDIR /source
COPY . .
RUN pip install --require-hashes -r .github/build-requirements.txt \
 && pip wheel --no-deps --no-build-isolation -w /wheels .

FROM python:3.12-slim
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir /wheels/*.whl && rm -r /wheels
ENV MPLBACKEND=Agg
WORKDIR /data
ENTRYPOINT ["equipoise"]
CMD ["--help"]
