/** What goes with runs that are deleted, and what stays. */

import type { JSX } from "preact";

export function WhatGoes(): JSX.Element {
  return (
    <>
      <ul>
        <li>all scalars, plots, images and console lines</li>
        <li>
          artifacts and output models, with their files on this server, except published models and those that other
          runs use
        </li>
      </ul>
      <p>Child runs stay.</p>
    </>
  );
}
