import React from 'react';

/** A sentence of the server, in which code is between backquotes. */
export function Sentence({ text }: { text: string }): JSX.Element {
  return (
    <>
      {text
        .split('`')
        .map((part, index) =>
          index % 2 ? <code key={index}>{part}</code> : part
        )}
    </>
  );
}
