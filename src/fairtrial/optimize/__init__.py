"""The optimise loop: propose, check, repair, time, refine, choose."""
