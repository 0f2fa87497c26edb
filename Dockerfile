# The image of one program, from the repository's root:
#   docker build --build-arg PROGRAM=static-service --build-arg PORT=3002 .
# What is downloaded is one layer, the same for all programs, and changes with the lockfile alone.
FROM node:26-bookworm-slim AS downloads
WORKDIR /app
COPY pnpm-lock.yaml pnpm-workspace.yaml ./
RUN npx -y pnpm@12.21.0 fetch --prod && rm -r node_modules

# The program with the packages that it uses, as sources. Optional is only the Node that a clone brings: 150 MB.
FROM downloads AS packages
COPY package.json ./
COPY packages packages
ARG PROGRAM
RUN npx -y pnpm@12.21.0 install --offline --prod --no-optional --frozen-lockfile --filter "@domains-and-files/$PROGRAM..." && \
  find packages -mindepth 1 -maxdepth 1 ! -exec test -e {}/node_modules ';' -exec rm -r {} + && \
  ln -s "packages/$PROGRAM" program

FROM packages AS build
COPY scripts/build scripts/build
ARG PROGRAM
RUN npx -y pnpm@12.21.0 install --offline --prod --frozen-lockfile --filter "@domains-and-files/build" && \
  node scripts/build/main.ts $PROGRAM
# The compile cache is part of the image, written by the user who starts the program: a refused start compiles it all,
# but for the worker threads.
ENV NODE_COMPILE_CACHE=/app/program/node_modules/.cache/compiled
RUN mkdir program/node_modules/.cache && chown node program/node_modules/.cache
USER node
RUN ! PORT=none node program/dist/main.js && ls $NODE_COMPILE_CACHE/* && \
  for thread in program/dist/*-worker.js; do [ ! -e $thread ] || ! node $thread 2> /dev/null || exit 1; done

FROM node:26-bookworm-slim
ARG PORT
ENV NODE_ENV=production HOST=0.0.0.0 PORT=$PORT DATA_DIR=/data
ENV NODE_COMPILE_CACHE=/app/program/node_modules/.cache/compiled
# Otherwise each thread keeps memory that it once used, such as the 19 MiB of a password hash.
ENV MALLOC_ARENA_MAX=1
RUN mkdir /data /users /backups && chown node:node /data /users /backups
COPY scripts/container/ /usr/local/bin/
WORKDIR /app
COPY --from=packages /app ./
COPY --from=build /app/program/dist program/dist
COPY --from=build --chown=node /app/program/node_modules/.cache program/node_modules/.cache
USER node
EXPOSE $PORT
# A check starts Node: on a busy machine that takes seconds.
HEALTHCHECK --interval=5s --timeout=10s --start-period=60s --retries=3 \
  CMD ["node", "-e", "fetch('http://127.0.0.1:' + process.env.PORT + '/health').then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "program/dist/main.js"]
