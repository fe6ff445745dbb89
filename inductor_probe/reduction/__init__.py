"""The smallest program that still shows it: a graph is reduced while predicates hold, and becomes a script.

`program` is a graph as lines of Python, and its text; `traced` makes one of what dynamo traced. `smaller`
says what can be left out of it, `search` tries that (ddmin), `judging` asks a text whether the predicates
hold, and `child` does all three in a process that imports torch once. `reduce` is the verb.

`bisection` is the other verb: by the same predicates, of a script as it is, which build (`builds`), setting
or decision makes the difference. `asking` asks a script alone, for both.

What was decided here:

- What is reduced is the graph that dynamo hands to inductor: its nodes are torch's own functions, operators
  and methods, so that a script of them is what a person would write.
- A candidate is a text: a script that runs alone. What a text showed is written down as it is known, so an
  interrupted search starts again and finds its answers there. The search itself draws nothing at random.
- A candidate runs in a fork of a process that has compiled something before: importing torch, looking for the
  vector instructions of the machine, and registering patterns take ten times as long as compiling ten nodes.
  A crash ends the fork alone.
- g++ runs where values or times are asked for. Decisions are made before; the FX graph computes then.
- The end is asked in fresh processes, of the file that is left.
- What is named by nothing but the graph is tried first: calls that few lines make. Among layers that are
  alike it is seldom about what they all do, and ten nodes compile in a tenth of the time.
- Files of a fork are in a folder that its parent removes, also where it ended the fork.
- It is above `api`: the predicates are its verbs, of which `expect` is the language.
"""
